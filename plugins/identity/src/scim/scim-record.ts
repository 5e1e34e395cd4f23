import type { Sql } from '@platform/sdk';
import { spokenOf } from '../../../../signin/messages.ts';
import { isAddress } from '../people/people.ts';
import type { Person } from '../people/person.ts';
import { isDocument, type Json, type ScimDocument } from './scim-document.ts';
import { ENTERPRISE, USER } from './scim-user-schema.ts';

/** A person with what a directory knows of them. */
export interface ScimRecord extends Person {
  readonly user_name: string | null;
  readonly external_id: string | null;
  readonly version: number;
  readonly updated_at: string;
  /** As a provisioner sent them; none until one did. */
  readonly attributes: ScimDocument | null;
  readonly groups: ScimDocument[] | null;
}

/** Columns of a record, over `users u left join scim_users s`. */
export const recordColumns = (sql: Sql): unknown => sql`
  u.*, s.attributes,
  (select jsonb_agg(jsonb_build_object('value', g.group_id, 'display', g.name, 'type', 'direct') order by g.name)
   from group_members m join user_groups g on g.env_id = m.env_id and g.name = m.group_name where m.user_id = u.user_id) as groups`;

export const tagOf = ({ version }: { readonly version: number }): string => `W/"${version}"`;

/** What a client may send back as it came. */
export function writableOf(record: ScimRecord): ScimDocument {
  const { user_name, email, external_id, display_name, status, attributes } = record;
  return {
    userName: user_name ?? email,
    ...(external_id === null ? {} : { externalId: external_id }),
    ...(display_name === null ? {} : { displayName: display_name }),
    active: status !== 'disabled',
    ...(attributes ?? (isAddress(email) ? { emails: [{ value: email, primary: true }] } : {})),
  };
}

/** The resource of a record (RFC 7643, 4.1). */
export function resourceOf(record: ScimRecord, base: string): ScimDocument {
  const { [ENTERPRISE]: extension, ...core } = writableOf(record);
  return {
    schemas: extension === undefined ? [USER] : [USER, ENTERPRISE],
    id: record.user_id,
    ...core,
    ...(record.groups === null ? {} : { groups: record.groups }),
    ...(extension === undefined ? {} : { [ENTERPRISE]: extension }),
    meta: {
      resourceType: 'User',
      created: new Date(record.created_at).toISOString(),
      lastModified: new Date(record.updated_at).toISOString(),
      location: `${base}/Users/${record.user_id}`,
      version: tagOf(record),
    },
  };
}

/** What of a document stands in columns, and what stays as it was sent. */
export function storedOf(document: ScimDocument) {
  const { userName, externalId, displayName, active, password, ...attributes } = document;
  const userNameText = (userName as string).trim();
  return {
    columns: {
      user_name: userNameText,
      external_id: (externalId as string | undefined) ?? null,
      display_name: (displayName as string | undefined) ?? null,
      email: addressOf(attributes['emails']) ?? userNameText,
    },
    active: active as boolean | undefined,
    password: password as string | undefined,
    attributes,
  };
}

/** The language of mail: what a person reads comes before how their numbers are written (RFC 7643, 4.1.1). */
export function languageIn({ preferredLanguage, locale }: ScimDocument): string | undefined {
  return [preferredLanguage, locale].map(tag => (typeof tag === 'string' ? spokenOf(tag) : undefined)).find(Boolean);
}

/** The address a person signs in with: the primary one, else the first. */
function addressOf(emails: Json | undefined): string | undefined {
  const values = (Array.isArray(emails) ? emails : []).filter(isDocument);
  const chosen =
    values.find(each => each['primary'] === true && typeof each['value'] === 'string') ??
    values.find(each => typeof each['value'] === 'string');
  return chosen ? (chosen['value'] as string).trim() : undefined;
}
