"""Readers that turn the official files of data sets into items of tasks, one module a family.

``questions`` SQuAD, MRQA and CoQA, ``answers`` the files of predictions that their programs read, ``free_answers`` the
parts of passages that free answers are learnt as.
"""
