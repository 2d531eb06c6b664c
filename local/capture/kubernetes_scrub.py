"""What is left of `kubectl get <resource> -A -o json`: pure.

Pod templates and the objects of job controllers keep what is on a list, everything else loses what
is on one: free text is where secrets are.
"""

from collections.abc import Mapping
from typing import Any

from local.capture.kubernetes_kept import (
    ANNOTATIONS,
    CONTAINER,
    CONTAINER_STATUS,
    DROPPED,
    HASHED,
    NAMED_AFTER_JOBS,
    OBJECT_REFERENCES,
    OWNER_TEXT,
    OWNERS,
    POD_SPEC,
    POD_STATUS,
    SILENCED,
    SPEAKERS,
)
from local.capture.names import Pseudonyms, names_person

type Json = dict[str, Any]


def meet(resource: str, document: Mapping[str, Any], names: Pseudonyms) -> None:
    """Learn the accounts and, for texts that mention them, the jobs and pods of an answer."""
    for item in document.get("items") or ():
        if not isinstance(item, dict):
            continue
        if resource in NAMED_AFTER_JOBS:
            metadata = _mapping(item, "metadata")
            names.jobs.add(str(metadata.get("name", "")))
            owners = metadata.get("ownerReferences")
            for one in owners if isinstance(owners, list) else ():
                if isinstance(one, dict) and one.get("kind") != "Node":
                    names.jobs.add(str(one.get("name", "")))
        elif resource == "events":
            for key in OBJECT_REFERENCES:
                reference = _mapping(item, key)
                if reference.get("kind") not in {"Node", "ClusterQueue", "LocalQueue"}:
                    names.jobs.add(str(reference.get("name", "")))
    names.jobs.discard("")


def scrub(resource: str, document: Mapping[str, Any], names: Pseudonyms) -> Json:
    """Reduce an answer to what a recording may hold; an error (`Status`) keeps code and reason."""
    if document.get("kind") == "Status":
        kept = ("kind", "apiVersion", "status", "reason", "code")
        message = names.text(str(document.get("message", "")))
        return {key: document[key] for key in kept if key in document} | {"message": message}
    keep = _Scrubber(names, resource)
    items = [keep.item(item) for item in document.get("items") or () if isinstance(item, dict)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


class _Scrubber:
    def __init__(self, names: Pseudonyms, resource: str) -> None:
        self._names = names
        self._resource = resource

    def item(self, item: Json) -> Json:
        found: Json = {key: item[key] for key in ("apiVersion", "kind") if key in item}
        found["metadata"] = self._metadata(_mapping(item, "metadata"))
        rest = {k: v for k, v in item.items() if k not in {"apiVersion", "kind", "metadata"}}
        if self._resource in OWNERS:
            found |= self._owner(rest)
        else:
            found |= self._mapping(rest)
        if self._resource == "pods":
            found["status"] = self._pod_status(_mapping(item, "status"))
        elif self._resource == "events":
            self._event(item, found)
        elif self._resource in {"rolebindings", "clusterrolebindings"}:
            found["subjects"] = [self._subject(one) for one in _objects(item, "subjects")]
        elif self._resource == "serviceaccounts":
            for key in ("secrets", "imagePullSecrets"):
                if item.get(key):
                    found[key] = [{"name": self._secret(one)} for one in _objects(item, key)]
        return found

    def _metadata(self, metadata: Mapping[str, Any]) -> Json:
        kept = (
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "generation",
            "resourceVersion",
        )
        found = {key: self._any(metadata[key]) for key in kept if key in metadata}
        if labels := _mapping(metadata, "labels"):
            found["labels"] = {key: self._label(key, value) for key, value in labels.items()}
        annotations = _mapping(metadata, "annotations")
        chosen = {k: v for k, v in annotations.items() if k.startswith(ANNOTATIONS)}
        if chosen:
            found["annotations"] = {key: self._label(key, one) for key, one in chosen.items()}
        if owners := _objects(metadata, "ownerReferences"):
            found["ownerReferences"] = [self._mapping(one) for one in owners]
        if "finalizers" in metadata:
            found["finalizers"] = self._any(metadata["finalizers"])
        return found

    def _label(self, key: str, value: object) -> object:
        if isinstance(value, str) and value and names_person(key):
            return self._names.person(value)
        return self._any(value)

    def _any(self, value: object) -> Any:
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, list):
            return [self._any(one) for one in value]
        return self._names.text(value) if isinstance(value, str) else value

    def _mapping(self, value: Mapping[str, Any]) -> Json:
        if isinstance(value.get("containers"), list):
            return self._pod_spec(value)
        found: Json = {}
        for key, one in value.items():
            if key in DROPPED:
                continue
            if key == "metadata" and isinstance(one, dict):
                found[key] = self._metadata(one)
            elif key in {"annotations", "labels"} and isinstance(one, dict):
                found |= {key: self._metadata({key: one}).get(key, {})}
            elif key == "image" and isinstance(one, str):
                found[key] = self._image(one)
            elif key in HASHED and isinstance(one, str):
                found[key] = self._names.hidden(one)
            else:
                found[key] = self._label(key, one)
        return found

    def _pod_spec(self, spec: Mapping[str, Any]) -> Json:
        found = {key: self._any(spec[key]) for key in spec if key in POD_SPEC}
        for key in ("initContainers", "containers"):
            if key in spec:
                found[key] = [self._container(one) for one in _objects(spec, key)]
        if volumes := _objects(spec, "volumes"):
            found["volumes"] = [self._volume(one) for one in volumes]
        return found

    def _container(self, container: Mapping[str, Any]) -> Json:
        found = {key: self._any(container[key]) for key in container if key in CONTAINER}
        image = container.get("image")
        if isinstance(image, str):
            found["image"] = self._image(image)
        # Where it mounts something may declare checkpoints; what is mounted stays behind.
        paths = [one.get("mountPath") for one in _objects(container, "volumeMounts")]
        if mounts := [{"mountPath": self._names.text(p)} for p in paths if isinstance(p, str)]:
            found["volumeMounts"] = mounts
        return found

    def _image(self, image: str) -> str:
        """Keep an image's name and tag; whose registry it comes from stays behind."""
        return self._names.text(image.rpartition("/")[2])

    def _volume(self, volume: Mapping[str, Any]) -> Json:
        """Keep a volume's kind; of what it mounts only a pseudonym."""
        found: Json = {"name": self._any(volume.get("name", ""))}
        for kind, source in volume.items():
            if kind == "name":
                continue
            named = source if isinstance(source, dict) else {}
            found[kind] = {
                key: self._names.hidden(str(named[key]))
                for key in ("claimName", "name", "path", "secretName")
                if named.get(key)
            }
        return found

    def _pod_status(self, status: Mapping[str, Any]) -> Json:
        """Keep phase, conditions and restarts; what a container said at its end stays behind."""
        found = {key: self._any(status[key]) for key in status if key in POD_STATUS}
        for key in ("initContainerStatuses", "containerStatuses"):
            if statuses := _objects(status, key):
                found[key] = [
                    {k: self._any(one[k]) for k in one if k in CONTAINER_STATUS}
                    | {k: _state(one[k]) for k in ("state", "lastState") if k in one}
                    for one in statuses
                ]
        return found

    def _owner(self, value: object) -> Any:
        """Keep numbers, pod templates and the words that say what an object is."""
        if isinstance(value, list):
            return [self._owner(one) for one in value if not isinstance(one, str)]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("containers"), list):
            return self._pod_spec(value)
        found: Json = {}
        for name, one in value.items():
            if name == "metadata" and isinstance(one, dict):
                found[name] = self._metadata(one)
            elif isinstance(one, str):
                if name in OWNER_TEXT or name.endswith(("Time", "Timestamp")):
                    found[name] = self._names.text(one)
            elif name not in DROPPED and name not in {"annotations", "labels"}:
                found[name] = self._owner(one)
        return found

    def _event(self, item: Mapping[str, Any], found: Json) -> None:
        """Keep the messages of those that speak of admission and scheduling."""
        said = (
            item.get("reportingComponent"),
            item.get("reportingController"),
            _mapping(item, "source").get("component"),
        )
        heard = any(isinstance(one, str) and one.startswith(SPEAKERS) for one in said)
        for key in ("message", "note"):
            if key in found and not heard:
                found[key] = SILENCED

    def _subject(self, subject: Mapping[str, Any]) -> Json:
        found = self._mapping(subject)
        name = subject.get("name")
        if subject.get("kind") == "User" and isinstance(name, str):
            found["name"] = self._names.user(name)
        return found

    def _secret(self, reference: Mapping[str, Any]) -> str:
        return self._names.hidden(str(reference.get("name", "")))


def _state(state: object) -> Json:
    """Reduce a container's state to its kind, reason, exit code and times."""
    kept = ("reason", "exitCode", "signal", "startedAt", "finishedAt")
    named = state if isinstance(state, dict) else {}
    return {
        kind: {key: one[key] for key in kept if key in one}
        for kind, one in named.items()
        if isinstance(one, dict)
    }


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _objects(parent: Mapping[str, Any], key: str) -> list[Json]:
    value = parent.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
