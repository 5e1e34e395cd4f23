import { type Static, Type } from '@platform/sdk/contract';
import { Category } from './send.ts';

const Hour = Type.Integer({ minimum: 0, maximum: 23 });
export const QuietHours = Type.Object({ start_hour: Hour, end_hour: Hour });
export type QuietHours = Static<typeof QuietHours>;
/** G-POST-07; with a zone the hours are of its clock, in UTC without (H-28). */
export const Preferences = Type.Object({
  muted_categories: Type.Array(Category, { maxItems: 4, uniqueItems: true, title: 'Muted', description: 'These come to the inbox alone' }),
  quiet_hours: Type.Array(QuietHours, { maxItems: 24, description: '[{"start_hour": 22, "end_hour": 7}]; nothing is sent out meanwhile' }),
  timezone: Type.Optional(
    Type.Union([Type.String({ maxLength: 64 }), Type.Null()], { description: 'Of the quiet hours, such as Europe/Berlin; UTC when empty' }),
  ),
});
export type Preferences = Static<typeof Preferences>;
