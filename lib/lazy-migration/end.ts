/** Whether the former system is asked no more. */
export const isOver = ({ until }: { until?: string | undefined }, time: number): boolean => until !== undefined && Date.parse(until) <= time
