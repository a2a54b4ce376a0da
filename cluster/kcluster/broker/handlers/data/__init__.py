"""Records and their offsets: Produce, Fetch, ListOffsets and related APIs."""
