import { ConfigError } from '../../config.ts'
import type { Prepared } from '../../plugins/prepare.ts'
import { type Variables, explainUnknown, listUnknown } from '../../lib/variables.ts'

/** The texts of IDENTITY_TEXTS that this release does not have, as problems. */
export const explainUnknownTexts = ({ unknownTexts }: Prepared): string[] => unknownTexts.map((line) => `IDENTITY_TEXTS: ${line}`)

/**
 * Refuses what this release does not know and otherwise only warns of.
 * @throws ConfigError that names the variables and the texts
 */
export function refuseUnknown (env: Variables, start: Prepared): void {
  const problems = [...listUnknown(env).map(explainUnknown), ...explainUnknownTexts(start)]
  if (problems.length > 0) throw new ConfigError(problems)
}
