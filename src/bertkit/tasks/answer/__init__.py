"""Answer questions with words of a text, or say that it has no answer.

Source: Devlin et al. 2018, sections 4.2 and 4.3: a start and an end vector over all T_i.
"""
