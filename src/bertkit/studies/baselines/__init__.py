"""Train recurrent nets, on the loop and the text of what they are compared with."""
