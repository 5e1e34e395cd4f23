/** What stands in the way of joining, and what the person can do about it. */
export interface Refusal {
  readonly title: string;
  readonly text: string;
  /** What is offered next. */
  readonly offer: 'sign-out' | 'open' | 'again' | undefined;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  invitation_unknown: {
    title: 'This link is not valid',
    text: 'It may be cut short or belong to something that was deleted. Copy the whole link from the mail, or ask for a new invitation.',
    offer: undefined,
  },
  invitation_revoked: {
    title: 'The invitation was withdrawn',
    text: 'The person who invited you took it back or sent a newer one. Look for a later mail, or ask for a new invitation.',
    offer: undefined,
  },
  invitation_expired: {
    title: 'The invitation has expired',
    text: 'An invitation works for seven days. Ask for a new one.',
    offer: undefined,
  },
  invitation_already_accepted: {
    title: 'The invitation was accepted already',
    text: 'It works once. If it was you, the organization is open to you.',
    offer: 'open',
  },
  invitation_email_mismatch: {
    title: 'The invitation is for another e-mail',
    text: 'Sign out, and sign in with the address the mail was sent to. The address must be verified.',
    offer: 'sign-out',
  },
  access_model_missing: {
    title: 'The organization cannot take you in yet',
    text: 'Its groups are missing. Tell the person who invited you; the invitation stays good.',
    offer: 'again',
  },
  org_suspended: {
    title: 'The organization is suspended',
    text: 'Nobody can join it for now. The invitation stays good until it expires.',
    offer: 'again',
  },
  record_archived: { title: 'The organization is archived', text: 'Nobody can join it any more.', offer: undefined },
  identity_unavailable: {
    title: 'Joining is not possible at the moment',
    text: 'Nothing was changed. Try again in a moment.',
    offer: 'again',
  },
  members_busy: { title: 'Joining is not possible at the moment', text: 'Many people are joining. Try again in a moment.', offer: 'again' },
};

/** In words a person understands; `undefined` for what has nothing to do with invitations. */
export const invitationRefusal = (code: string): Refusal | undefined => REFUSALS[code];
