"""Users' YAML files: values with their places, and problems that name these places."""
