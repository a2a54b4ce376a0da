"""Users' YAML files: values with their place, and problems that name it."""
