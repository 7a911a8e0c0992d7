/**
 * The renamed keys: the old path of each text, and its new one, such as `'pages.account.code': 'pages.account.verificationCode'`. A text of an
 * operator with an old key is used under the new one. One row can rename a whole group.
 */
export const RENAMED_TEXTS: Readonly<Record<string, string>> = {
  'pages.account.sections.identities': 'pages.account.sections.methods',
  'pages.account.sections.factors': 'pages.account.twoStep'
}

type Group = Record<string, unknown>

const isGroup = (value: unknown): value is Group => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The group in which a path ends, and its last key. Undefined where there is no such group. */
function find (texts: unknown, path: string, makes: boolean): { group: Group, key: string } | undefined {
  const keys = path.split('.')
  const key = keys.pop() as string
  let group = texts
  for (const one of keys) {
    if (!isGroup(group)) return undefined
    if (makes && !Object.hasOwn(group, one)) group[one] = {}
    if (!Object.hasOwn(group, one)) return undefined
    group = group[one]
  }
  return isGroup(group) ? { group, key } : undefined
}

/**
 * Moves the texts of a file whose keys were renamed. A text that has the new key already stays.
 * @param texts what was read from the file, which changes
 * @returns a warning for each old key that the file has
 */
export function moveRenamed (texts: unknown, renamed: Readonly<Record<string, string>>): string[] {
  return Object.entries(renamed).flatMap(([before, now]) => {
    const from = find(texts, before, false)
    if (from === undefined || !Object.hasOwn(from.group, from.key)) return []
    const text = from.group[from.key]
    delete from.group[from.key]
    const to = find(texts, now, true)
    if (to !== undefined && !Object.hasOwn(to.group, to.key)) to.group[to.key] = text
    return [`${before}: is called ${now} in this release, rename it`]
  })
}
