// What passes between the page of the course, its worker and Python (learn/in_browser.py).

/** A message to the worker: first the files, then calls. */
export type ToWorker =
  | { files: { [name: string]: string } }
  | { number: number; call: string; values: unknown[]; reports: boolean };
/** A message from the worker. */
export interface FromWorker {
  stage?: string;
  ready?: number;
  number?: number;
  answer?: string;
  /** What is done of a call that reports it, and of how much. */
  done?: number;
  of?: number;
  /** How long Python took for the answer, in ms. */
  took_ms?: number;
  error?: string;
}

export interface Contents {
  version: string;
  lessons: Heading[];
  scenarios: ScenarioFile[];
}
export interface Heading {
  number: number;
  title: string;
  intro: string;
}
export interface ScenarioFile {
  name: string;
  title: string;
  text: string;
}
export interface Lesson extends Heading {
  summary: string;
  /** The partition that it is about: orders-0. */
  partition: string;
  trace: string;
  parts: Part[];
  page: string;
  exercise: Exercise;
  took_ms: number;
}
export interface Part {
  title: string;
  from: number;
  until: number;
  text: string;
  question: string;
  choices: string[];
  /** The runs of its search, 0 without one; `right` and `seen` are complete once they are played. */
  searches: number;
  /** The runs of its search that have been played; undefined before the first. */
  searched?: number;
  right: number | null;
  because: string;
  after: string;
  seen: string;
  /** The page of the part's own run; empty if it is that of the lesson. */
  page: string;
}
export interface Exercise {
  title: string;
  task: string;
  goals: { points: number; text: string }[];
  hint: string;
  may_edit: string[];
  runs: number;
  text: string;
}
export interface Problem {
  line: number;
  column: number;
  text: string;
}
/** The answer about a text: a run, a grade, or its problems. */
export interface Outcome {
  problems?: Problem[];
  page?: string;
  lines?: string;
  trace?: string;
  points?: number;
  of?: number;
  runs?: number;
  goals?: Goal[];
  took_ms: number;
}
export interface Goal {
  text: string;
  points: number;
  of: number;
  failed_runs: number;
  first_failing_seed: number | null;
  why: string;
}

/** What the course uses of the page of a run (cluster/kcluster/runs/page/page.js). */
export interface RunPage {
  ready: Promise<void>;
  began: number;
  look(at: number): void;
  showPartition(name: string): void;
}
