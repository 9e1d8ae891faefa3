"""Every method and ablation on every set of questions: recipes, measures, errors, cases, and the page of results."""
