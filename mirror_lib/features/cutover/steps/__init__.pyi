from .rollback import roll_back as roll_back
