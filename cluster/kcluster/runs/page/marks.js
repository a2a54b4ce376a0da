// @ts-check
// The crown: an election's mark, the same on the bar of time and on the lanes of a run.

/** A crown's outline, from the left end of its foot: 12 wide, 10 high. */
export const CROWN = "l-3 -8 3.4 3 2.6 -5 2.6 5 3.4 -3 -3 8z";
