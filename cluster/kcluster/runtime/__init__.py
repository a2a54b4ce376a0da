"""Drivers: the live one on gevent, the virtual one on an event heap, and handles to steer them."""
