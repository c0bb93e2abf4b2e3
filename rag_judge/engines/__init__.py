"""Other ways to have calls answered than one process asking one server; nothing the rest must import to work."""
