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


def instead_of(step):
    """A sentence that says what would do, or an empty one."""
    kind = type(step).__name__
    if kind in _SELECTORS:
        return " Name the columns in a ColumnTransformer instead: choosing them by the rows leaks."
    return f" Use {_INSTEAD[kind]} instead." if kind in _INSTEAD else ""
