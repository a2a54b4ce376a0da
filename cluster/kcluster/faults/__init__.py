"""Protocol faults: the requests that a rule matches, and its effect on them."""
