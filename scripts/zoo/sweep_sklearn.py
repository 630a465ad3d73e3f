"""Pipelines of scikit-learn, trained on numbers that are drawn, as skl2onnx converts them."""
import numpy as np

ROWS, COLUMNS = 7, 6


def data(classes):
    random = np.random.default_rng(0)
    x = random.standard_normal((300, COLUMNS)).astype("f4")
    y = (x @ random.standard_normal((COLUMNS, classes)) + random.standard_normal((300, classes))).argmax(1)
    return x, y


def pipelines():
    """Functions that make an estimator, by name."""
    from sklearn import compose, decomposition, ensemble, feature_selection, impute, linear_model, naive_bayes
    from sklearn import neighbors, neural_network, pipeline, preprocessing, svm, tree

    join = pipeline.make_pipeline
    scaled = lambda e: join(preprocessing.StandardScaler(), e)
    mixed = compose.make_column_transformer(
        (join(impute.SimpleImputer(), preprocessing.MinMaxScaler()), [0, 1, 2]),
        (preprocessing.RobustScaler(), [3, 4]), remainder="passthrough")
    bins = preprocessing.KBinsDiscretizer(4, encode="ordinal")
    return {
        "logistic": lambda: scaled(linear_model.LogisticRegression()),
        "ridge": lambda: scaled(linear_model.Ridge()),
        "lasso of polynomials": lambda: join(preprocessing.PolynomialFeatures(2), linear_model.Lasso(0.01)),
        "sgd": lambda: scaled(linear_model.SGDClassifier(random_state=0)),
        "svc rbf": lambda: scaled(svm.SVC()),
        "svc poly": lambda: scaled(svm.SVC(kernel="poly")),
        "svc with probabilities": lambda: scaled(svm.SVC(probability=True, random_state=0)),
        "linear svc": lambda: scaled(svm.LinearSVC()),
        "svr rbf": lambda: scaled(svm.SVR()),
        "svr sigmoid": lambda: scaled(svm.SVR(kernel="sigmoid")),
        "nu svr": lambda: scaled(svm.NuSVR()),
        "one class": lambda: scaled(svm.OneClassSVM()),
        "tree": lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0),
        "forest": lambda: ensemble.RandomForestClassifier(40, max_depth=8, random_state=0),
        "large forest": lambda: ensemble.RandomForestRegressor(500, max_depth=8, random_state=0),
        "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=30, random_state=0),
        "histogram boosting": lambda: ensemble.HistGradientBoostingRegressor(max_iter=30, random_state=0),
        "isolation forest": lambda: ensemble.IsolationForest(n_estimators=20, random_state=0),
        "neighbours": lambda: neighbors.KNeighborsClassifier(5),
        "neighbours' mean": lambda: neighbors.KNeighborsRegressor(4),
        "naive bayes": lambda: naive_bayes.GaussianNB(),
        "network": lambda: scaled(neural_network.MLPClassifier((16, 8), max_iter=50, random_state=0)),
        "principal components": lambda: join(preprocessing.StandardScaler(), decomposition.PCA(3),
                                             linear_model.LogisticRegression()),
        "selected": lambda: join(feature_selection.SelectKBest(k=3), preprocessing.Normalizer(),
                                 linear_model.LogisticRegression()),
        "columns": lambda: join(mixed, ensemble.ExtraTreesClassifier(10, max_depth=4, random_state=0)),
        "bins": lambda: join(bins, linear_model.Ridge()),
        "categories": lambda: join(bins, preprocessing.OneHotEncoder(), linear_model.Ridge()),
        "stacked": lambda: ensemble.StackingClassifier(
            [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3, random_state=0))]),
        "voting": lambda: ensemble.VotingClassifier(
            [("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft", flatten_transform=False),
        "ada boost": lambda: ensemble.AdaBoostClassifier(n_estimators=10, random_state=0),
    }


def write(name, path, how):
    """Trains the pipeline and writes it; the result are flags that specialise it. How: the number of classes; "names" for
    labels that are strings, "maps" for scores as maps."""
    import skl2onnx
    import sklearn.base

    classes = next((int(h) for h in how if h.isdigit()), 3)
    x, y = data(classes)
    estimator = pipelines()[name]()
    if "names" in how:
        y = np.array(["a red one", "green", "blue", "white"])[y]
    if sklearn.base.is_regressor(estimator):
        y = x @ np.arange(1, COLUMNS + 1) + np.sin(3 * x[:, 0])
    estimator.fit(x, y)
    options = None
    if sklearn.base.is_classifier(estimator) and name != "linear svc":
        options = {id(estimator): {"zipmap": "maps" in how}}
    model = skl2onnx.to_onnx(estimator, x[:ROWS], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    path.write_bytes(model.SerializeToString())
    return ["--shape", f"{model.graph.input[0].name}={ROWS}x{COLUMNS}"]
