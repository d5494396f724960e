"""The studies, their list (`catalogue`), and what they share. Some studies have their findings in a separate
`_reading` module.
"""
