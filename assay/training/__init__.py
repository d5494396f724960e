"""`assay.train`: a training posted from Python, and the handle of its task. `assay` exports what is here, lazily.

`posting` captures and posts, `handle` is what is then done with the task, `callbacks` are told of its metrics,
`display` shows it, in a notebook too, `loading` brings its result back into a model.
"""
