"""The creation, growth and deletion of topics."""
