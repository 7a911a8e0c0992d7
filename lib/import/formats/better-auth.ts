import type { ImportLine } from '../../../schemas/import.ts'
import { compact, Refusal, type Source, toAccount } from './source.ts'

type Account = Record<string, unknown>

/** The credential's hash is better-auth's own, unless the app has a hasher of its own. */
function readPassword (accounts: Account[]): ImportLine['password'] {
  const hash = accounts.find(({ providerId }) => providerId === 'credential')?.['password']
  if (typeof hash !== 'string' || hash === '') return undefined
  return /^[0-9a-f]+:[0-9a-f]+$/i.test(hash) ? { scheme: 'better-auth', hash } : { hash }
}

/** better-auth: rows of `user`, each with its rows of `account` as the member `accounts`. */
export function convertBetterAuth (source: Source): ImportLine {
  const id = source.id('id')
  if (id === undefined) throw new Refusal('is required', 'id')
  const accounts = source.list('accounts')
  if (source.flag('twoFactorEnabled') === true) source.loseFactor('twoFactorEnabled')
  if (source.flag('isAnonymous') === true) throw new Refusal('this account belongs to nobody yet', 'isAnonymous')
  source.ignore('updatedAt', 'displayUsername')
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { username: source.text('username'), email: source.text('email'), verified: source.flag('emailVerified'), prefer: 'email' }),
    name: source.text('name'),
    disabled: source.flag('banned'),
    created_at: source.time('createdAt'),
    password: readPassword(accounts),
    identities: accounts.filter(({ providerId }) => providerId !== 'credential')
      .flatMap(({ providerId, accountId }) => source.identity(String(providerId), accountId))
  })
}
