"""The formats of files: values as trees, guarded YAML, three-way merge of trees, and the route file."""
