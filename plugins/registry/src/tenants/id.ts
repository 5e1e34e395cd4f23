const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a path parameter can be an id at all: the database must not be asked about anything else. */
export const isId = (text: string): boolean => UUID.test(text);
