"""The contenders and their settings: MirrorMaker 2, a loop around two clients, this project on a warm session."""
