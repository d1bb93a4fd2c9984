"""What knows no node: errors, documents, versions, files, and the form of a step."""
