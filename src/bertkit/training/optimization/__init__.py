"""How weights change: optimizers, learning rate schedules, averages; read `optimizer.py` first."""
