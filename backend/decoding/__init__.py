"""Files of strangers are decoded by processes of their own, within limits of memory and time. Imports next to nothing:
the child imports this package, too."""
