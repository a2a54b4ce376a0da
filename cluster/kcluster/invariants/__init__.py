"""What must hold after every step, and the checks of it."""
