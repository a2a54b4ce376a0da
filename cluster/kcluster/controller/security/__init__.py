"""The controller's part in security: ACLs, and what clients may ask of the controller."""
