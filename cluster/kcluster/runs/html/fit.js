// How the page fits a small screen: the lanes keep at least half of its height.
//
// Sizes are compared with each other, never with pixels of the screen, so that any zoom is the same.

const NARROW_PX = 900;
/** Parts that become a panel with a button, in the order in which they give way. */
const PARTS = ["legend", "about", "side"];

const isNarrow = () => document.body.classList.contains("narrow");

/** Whether the lanes, without the overview and the axis above them, have half of the height. */
function lanesHaveHalf() {
  const height = (element) => element.getBoundingClientRect().height;
  const lanes = height(document.getElementById("scroll")) - height(document.getElementById("top"));
  return lanes * 2 >= height(document.body);
}

function fit() {
  const { classList, clientWidth } = document.body;
  const opened = PARTS.find(isOpen);
  closePanels();
  classList.remove("tight", ...PARTS.map((part) => `off-${part}`));
  classList.toggle("narrow", clientWidth < NARROW_PX);
  for (const part of PARTS) {
    if (lanesHaveHalf()) break;
    // Beside the lanes the findings take no height.
    if (part !== "side" || isNarrow()) classList.add(`off-${part}`);
  }
  if (!lanesHaveHalf()) classList.add("tight");
  if (opened) openPanel(opened, true);
}

/** Whether a part is a panel now. */
const isPanel = (part) => document.body.classList.contains(`off-${part}`);

const isOpen = (part) => document.body.classList.contains(`show-${part}`);

/** Open or close the panel of a part; one at a time.  What is no panel stays as it is. */
function openPanel(part, wanted) {
  // The story opens below the buttons, so that its own stays in reach.
  const above = ["head", "tools"].map((id) => document.getElementById(id).offsetHeight);
  document.getElementById("about").style.top = `${above[0] + above[1]}px`;
  for (const each of PARTS) {
    if (each !== part && !wanted) continue;
    const shown = each === part && wanted && isPanel(part);
    document.body.classList.toggle(`show-${each}`, shown);
    document.getElementById(`${each}-button`).setAttribute("aria-expanded", String(shown));
  }
}

function closePanels() {
  for (const part of PARTS) openPanel(part, false);
}

function watchSize() {
  for (const part of PARTS) {
    document.getElementById(`${part}-button`).addEventListener("click", () => {
      openPanel(part, !isOpen(part));
    });
  }
  new ResizeObserver(fit).observe(document.body);
  fit();
}
