"""What a version of the product has stored, for later versions to read: the writer, and the access to its folders."""
