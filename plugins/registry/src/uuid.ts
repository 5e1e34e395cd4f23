const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a path segment can be an id at all: the database would refuse anything else as an error of ours. */
export const isUuid = (text: string): boolean => UUID.test(text);
