"""The chain of events behind a finding: facts, their words, and the links that hold them."""
