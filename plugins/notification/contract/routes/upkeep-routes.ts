import { del, get, Id, Page, PageQuery, post, put, SortQuery, Type } from '@platform/sdk/contract';
import { Preferences } from '../schema/preference.ts';
import { Channel } from '../schema/send.ts';
import { Bounce, DeadLetter, KeptMail, NewSuppression, Replayed, ReplayMatching, ReplayReport, Suppression } from '../schema/upkeep.ts';

const ofMail = { mail_id: Id };

const administered = { gate: 'post:admin', env: 'target' } as const;

/** Preferences, what could not be delivered, addresses that refuse mail, and the mailbox of development. */
export const upkeepRoutes = {
  getPreferences: get('/v1/preferences', {
    summary: 'What the caller wants to be sent',
    gate: { any: ['post:read', 'post:admin'] },
    env: 'own',
    returns: Preferences,
  }),
  putPreferences: put('/v1/preferences', {
    summary: 'Save preferences',
    gate: 'post:write',
    env: 'own',
    body: Preferences,
    returns: Preferences,
    problems: ['timezone_unknown'],
  }),

  listDeadLetters: get('/v1/dead-letters', {
    summary: 'What could not be delivered, newest first',
    ...administered,
    query: { channel: Type.Optional(Channel), ...SortQuery('failed_at'), ...PageQuery },
    returns: Page(DeadLetter),
  }),
  replayDeadLetter: post('/v1/dead-letters/{dead_letter_id}/replay', {
    params: { dead_letter_id: Id },
    summary: 'Replay',
    ...administered,
    returns: Replayed,
    problems: ['dead_letter_not_found'],
  }),
  replayMatching: post('/v1/dead-letters/replay-matching', {
    summary: 'Replay all that match',
    ...administered,
    body: ReplayMatching,
    returns: ReplayReport,
  }),

  listSuppressions: get('/v1/suppressions', {
    summary: 'Addresses that mail is not sent to',
    ...administered,
    query: { address: Type.Optional(Type.String({ title: 'Address', maxLength: 320 })), ...PageQuery },
    returns: Page(Suppression),
  }),
  addSuppression: post('/v1/suppressions', {
    summary: 'Stop mail to an address',
    ...administered,
    body: NewSuppression,
    returns: Suppression,
    problems: ['recipient_invalid'],
  }),
  deleteSuppression: del('/v1/suppressions/{suppression_id}', {
    params: { suppression_id: Id },
    summary: 'Send to an address again',
    ...administered,
    problems: ['suppression_not_found'],
  }),
  reportBounce: post('/v1/bounces', {
    summary: 'Say that a mail came back',
    gate: 'post:bounces:write',
    env: 'any',
    body: Bounce,
    returns: Type.Object({ suppressed: Type.Boolean() }),
    problems: ['message_not_found'],
  }),

  listMailbox: get('/v1/mailbox', {
    summary: 'Mails that were kept instead of sent, newest first',
    gate: 'post:mailbox:read',
    query: { to: Type.Optional(Type.String({ title: 'To', maxLength: 320 })), ...PageQuery },
    returns: Page(KeptMail),
  }),
  getMail: get('/v1/mailbox/{mail_id}', {
    params: ofMail,
    summary: 'One kept mail',
    gate: 'post:mailbox:read',
    returns: KeptMail,
    problems: ['mail_not_found'],
  }),
  deleteMail: del('/v1/mailbox/{mail_id}', {
    params: ofMail,
    summary: 'Forget a kept mail',
    gate: 'post:mailbox:read',
    problems: ['mail_not_found'],
  }),
} as const;
