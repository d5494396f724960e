"""The test suite, sorted into folders by what must be running."""
