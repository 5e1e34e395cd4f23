const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether text is an id as the wire spells them; anything else would be an error of the database's, not of the caller's. */
export const isId = (text: string | undefined): text is string => text !== undefined && UUID.test(text);
