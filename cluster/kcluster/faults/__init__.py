"""Protocol faults: which requests a rule matches, and what happens to them."""
