"""What to use instead of a step that learns from the rows without a guarantee."""

__all__ = ["instead_of"]

_INSTEAD = {
    "StandardScaler": "DPQuantileScaler, or BoundedScaler with public bounds",
    "MinMaxScaler": "DPQuantileScaler, or BoundedScaler with public bounds",
    "MaxAbsScaler": "DPQuantileScaler, or BoundedScaler with public bounds",
    "RobustScaler": "DPQuantileScaler, or BoundedScaler with public bounds",
    "QuantileTransformer": "DPQuantileScaler, with n_splines for curves",
    "PowerTransformer": "DPQuantileScaler, with n_splines for curves",
    "KBinsDiscretizer": "BoundedSplineTransformer or DPQuantileScaler, with n_splines",
    "SplineTransformer": "BoundedSplineTransformer, or DPQuantileScaler with n_splines",
    "OneHotEncoder": "DPOneHotEncoder, or categories=[[...]] of a codebook",
    "OrdinalEncoder": "DPOneHotEncoder, or categories=[[...]] of a codebook",
    "TargetEncoder": "DPOneHotEncoder",
    "LabelBinarizer": "OneHotEncoder with categories=[[...]] of a codebook",
    "MultiLabelBinarizer": "HashingVectorizer or FeatureHasher",
    "DictVectorizer": "FeatureHasher",
    "CountVectorizer": "HashingVectorizer",
    "TfidfVectorizer": "HashingVectorizer",
    "TfidfTransformer": "HashingVectorizer",
    "SimpleImputer": "DPSimpleImputer, or strategy='constant' with a public fill_value",
    "KNNImputer": "DPSimpleImputer",
    "IterativeImputer": "DPSimpleImputer",
    "MissingIndicator": "features='all'",
    "FunctionTransformer": "one of numpy's functions of single numbers, such as np.log1p",
    "PCA": "RandomFourierTransformer, GaussianRandomProjection, or no step at all",
    "IncrementalPCA": "GaussianRandomProjection, or no step at all",
    "KernelPCA": "RandomFourierTransformer",
    "TruncatedSVD": "GaussianRandomProjection, or no step at all",
    "Nystroem": "RandomFourierTransformer",
    "RBFSampler": "RandomFourierTransformer, or a number for gamma",
    "LogisticRegression": "DPLogisticRegression",
    "LogisticRegressionCV": "DPLogisticRegression",
    "RidgeClassifier": "DPLogisticRegression",
    "SGDClassifier": "DPLogisticRegression or DPLinearSVC",
    "Perceptron": "DPLinearSVC",
    "LinearSVC": "DPLinearSVC",
    "SVC": "DPLogisticRegression after RandomFourierTransformer",
    "GaussianNB": "DPLogisticRegression",
    "RandomForestClassifier": "DPLogisticRegression on splines",
    "HistGradientBoostingClassifier": "DPLogisticRegression on splines",
    "LinearRegression": "DPKernelRidge(kernel='linear')",
    "Ridge": "DPKernelRidge(kernel='linear')",
    "Lasso": "DPKernelRidge(kernel='linear')",
    "ElasticNet": "DPKernelRidge(kernel='linear')",
    "KernelRidge": "DPKernelRidge",
    "SVR": "DPKernelRidge",
    "GaussianProcessRegressor": "DPKernelRidge",
    "SGDRegressor": "DPOnlineKernelRegressor or MIPrivateSGDRegressor",
    "RandomForestRegressor": "DPKernelRidge",
    "HistGradientBoostingRegressor": "DPKernelRidge",
}
_SELECTORS = {"SelectKBest", "SelectPercentile", "SelectFromModel", "SelectFdr", "SelectFpr"}
_SELECTORS |= {"SelectFwe", "GenericUnivariateSelect", "VarianceThreshold", "RFE", "RFECV"}
_SELECTORS |= {"SequentialFeatureSelector"}
# Around one estimator or several, to which they do more than fit one of them to the rows.
_ENSEMBLES = {"AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor"}
_ENSEMBLES |= {"StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor"}
_OUTPUTS = {"ClassifierChain", "MultiOutputClassifier", "MultiOutputRegressor", "RegressorChain"}
_AROUND = {
    **dict.fromkeys(_ENSEMBLES, "one private model, which has the whole budget"),
    **dict.fromkeys(_OUTPUTS, "a DPPipeline for each output, and a BudgetLedger for all of them"),
    **dict.fromkeys(
        ("OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier"),
        "the classifier itself, which takes any number of classes",
    ),
    "CalibratedClassifierCV": "the probabilities of DPLogisticRegression as they are",
    "RANSACRegressor": "the regressor itself, which clips targets to y_bounds",
    "SelfTrainingClassifier": "the classifier itself, on the rows that have labels",
    "TunedThresholdClassifierCV": "FixedThresholdClassifier with a public threshold",
    **dict.fromkeys(
        ("GridSearchCV", "HalvingGridSearchCV"), "a DPGridSearch around the whole DPPipeline"
    ),
    **dict.fromkeys(
        ("RandomizedSearchCV", "HalvingRandomSearchCV"),
        "a DPRandomizedSearch around the whole DPPipeline",
    ),
}


def instead_of(step):
    """A sentence that says what would do, or an empty one."""
    kind = type(step).__name__
    if kind in _SELECTORS:
        return (
            " Use SelectFromModel around a private linear model instead, or name the columns in a "
            "ColumnTransformer: choosing them by the rows leaks."
        )
    instead = _AROUND.get(kind, _INSTEAD.get(kind))
    return f" Use {instead} instead." if instead else ""
