"""The studies, their list (`catalogue`), and what they share. A study's findings may have their own
`_reading` module.
"""
