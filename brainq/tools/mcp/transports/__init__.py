"""How bytes go to a server and back, within bounds: what a server sends must not fill this process."""
