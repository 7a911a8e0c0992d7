import type { ImportLine } from '../../../schemas/import.ts'
import { compact, isObject, joinName, Refusal, type Source, toAccount } from './source.ts'

/** Django: `dumpdata`, as an array or as lines (`--format jsonl`). Records of other models are left out. */
export function convertDjango (record: Source): ImportLine | undefined {
  const fields = record.take('fields')
  if (typeof record.text('model') !== 'string' || !isObject(fields)) throw new Refusal('is no object of dumpdata, with model and fields')
  // Any user model has these, whatever its name.
  if (!Object.hasOwn(fields, 'password') || !Object.hasOwn(fields, 'last_login')) return undefined
  const id = record.id('pk')
  if (id === undefined) throw new Refusal('is required: export without --natural-primary', 'pk')
  const source = record.within(fields)
  const hash = source.text('password')
  const active = source.flag('is_active')
  source.ignore('last_login')
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { username: source.text('username'), email: source.text('email'), prefer: 'username' }),
    ...joinName(source.text('first_name'), source.text('last_name')),
    disabled: active === undefined ? undefined : !active,
    created_at: source.time('date_joined'),
    // Django marks an account without a password so.
    password: hash === undefined || hash.startsWith('!') ? undefined : { hash }
  })
}
