"""Consumer groups: their coordinator, members and committed offsets."""
