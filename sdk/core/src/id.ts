import { CORRELATION_PATTERN, ID_PATTERN } from './contract/wire.ts';

const ID = new RegExp(ID_PATTERN);
const CORRELATION = new RegExp(CORRELATION_PATTERN);

/** Whether text is an id as the wire spells them (G-K-03); anything else would be an error of the database's, not of the caller's. */
export const isId = (text: string | undefined): text is string => text !== undefined && ID.test(text);

/** Whether text can go on as a correlation id, in headers and in the log. */
export const isCorrelationId = (text: string | undefined): text is string => text !== undefined && CORRELATION.test(text);
