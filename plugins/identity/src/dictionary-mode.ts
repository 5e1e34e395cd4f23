const [NEWER, OLDER] = [Symbol('newer'), Symbol('older')];

/**
 * Makes V8 keep the members of an object in the object itself, not in a hidden class. A getter that is defined on each of many objects
 * gives each a class of its own otherwise, born in the old generation, which keeps all that the getter sees until the next full collection.
 */
export function useDictionaryMode(object: object): void {
  Object.assign(object, { [OLDER]: true, [NEWER]: true });
  // What does it: a member goes that is not the newest.
  Reflect.deleteProperty(object, OLDER);
}
