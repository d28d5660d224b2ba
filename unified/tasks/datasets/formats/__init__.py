"""Readers that turn the official files of data sets into items of tasks, one module a family.

``questions`` SQuAD, MRQA and CoQA, ``answers`` the files of predictions that their programs read, ``free_answers`` the
parts of passages that free answers are learnt as; ``glue`` the classifications and the regression of GLUE,
``glue_submission`` the files that its server takes; ``choices`` SWAG, CODAH, RACE and DREAM; ``words`` CoNLL-2003 and
WNUT-17; ``relations`` TACRED and SemEval-2010 task 8; ``tables`` what files of columns share, ``files`` which of a
folder's files hold the splits.
"""
