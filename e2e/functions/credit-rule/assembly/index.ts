import { Json } from './json';
import { give, log, read } from './platform';

export { alloc } from './platform';

/** What is lent to somebody already: `{ applicant }` goes in, `{ approved_minor }` comes out. */
@external("platform", "exposure")
declare function exposure(pointer: usize, length: i32): i64;

function lentTo(applicant: string): i64 {
  const asked = String.UTF8.encode('{"applicant":' + Json.quote(applicant) + '}');
  const answer = exposure(changetype<usize>(asked), asked.byteLength);
  return i64(Json.parse(read(<usize>(answer >> 32), <i32>answer)).get('approved_minor').number);
}

/** Rejects a loan with which somebody would owe more than `largest_minor` of the parameters. */
export function decide(pointer: usize, length: i32): i64 {
  const request = Json.parse(read(pointer, length));
  const context = request.get('context');
  const owed = lentTo(context.get('applicant').text) + i64(context.get('amount_minor').number);
  const largest = i64(request.get('parameters').get('largest_minor').number);
  log('would owe ' + owed.toString() + ' of ' + largest.toString());
  if (owed > largest) return give('{"decision":"reject","reject_reason":"Nobody owes more than ' + largest.toString() + '."}');
  return give('{"decision":"accept","result":{"owed_minor":' + owed.toString() + '}}');
}
