// The modules of the run's page that build.py puts before the course's own (runs/page/bundle.py).

declare global {
  const $dom: typeof import("../../cluster/kcluster/runs/page/dom.js");
  const $lesson: typeof import("../../cluster/kcluster/runs/page/lesson.js");
}

export {};
