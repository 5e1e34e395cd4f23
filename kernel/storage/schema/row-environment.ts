/** The setting that says whose rows a transaction is about. */
export const SETTING = 'app.env_id';
/** In the place of an environment: all of them. */
export const EVERY = '*';

/** A connection's own setting, for a pool whose every statement is about all environments. */
export const EVERY_ENVIRONMENT = { [SETTING]: EVERY };
