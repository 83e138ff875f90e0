"""Multiple choice: answers to a question, or endings of a story; read `task.py` first.

Source: Devlin et al. 2018, section 4.4 (SWAG): one score for each C, a softmax over the choices.
"""
